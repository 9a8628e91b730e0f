"""Users' tables: reading anything tabular, and giving rows back the way they came."""
