"""Who is protected, what may be spent, what noise that buys, who draws it, and the book that is kept."""
