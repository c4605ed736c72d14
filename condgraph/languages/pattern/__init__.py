"""Graph patterns (SimGRAG): what is looked for, and the texts that say so."""
