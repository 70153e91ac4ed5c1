"""The steps of one application: who reads what, how each is called, what it handed over, how its turn went."""
