"""A question in plain words, an answer that can be checked (TrustUQA, section 3; SimGRAG, 4.2).

    methods   what `Graph` has of it
    pipeline  a question on its way: language, prompt, programs, votes, the answer in words
    parts     a long question as several that are asked one after the other
    prompt    what a model is shown: names in the question, an excerpt of the schema, the prompt files
    demos     questions with programs, kept with the graph or learned from answers
    programs  the program in a reply, its run, and feedback on failures
    records   options, steps, attempts and the outcome

A model writes; its text is read by the read-only parsers of `languages` and nothing else.
"""
