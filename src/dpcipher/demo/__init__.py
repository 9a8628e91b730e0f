"""The demo: the whole story on people the project invents."""
