"""What is asked for, under which promise: public, and refused where it can be before any row is read."""
