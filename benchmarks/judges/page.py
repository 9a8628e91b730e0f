def write_judges() -> None:
    pass
