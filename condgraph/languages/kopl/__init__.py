"""KoPL (KQA Pro): the text of a program, its steps, and how they are lowered to the algebra."""
