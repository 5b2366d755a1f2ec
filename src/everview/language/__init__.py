"""Ask for views in SQL: types, expressions, plans, programs."""
