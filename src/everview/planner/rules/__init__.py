"""One rewrite a file; each states the equivalence it rests on. `planner.rewrite.RULES` is their order."""
