"""`python -m dpcipher` is the command line too."""

from dpcipher.cli import main

if __name__ == "__main__":
    main()
