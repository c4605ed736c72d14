"""Questions in plain words, with answers that can be checked (TrustUQA, section 3; SimGRAG, 4.2).

    methods   the methods of `Graph`
    pipeline  the processing of a question: language, prompt, programs, votes, the answer in words
    parts     a long question, split into parts that are asked one after the other
    prompt    what a model is shown: names in the question, an excerpt of the schema, the prompt files
    demos     questions with programs, stored with the graph or learned from answers
    programs  the program in a reply, running it, and feedback on failures
    judge     whether an answer fits its question
    records   options, steps, attempts and the outcome

The text that a model writes is only ever read by the read-only parsers of `languages`.
"""
