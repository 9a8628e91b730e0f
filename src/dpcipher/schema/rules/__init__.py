"""Rules that every row keeps: written as texts, compiled to structural zeros where tables can hold them, checked row by row elsewhere."""
