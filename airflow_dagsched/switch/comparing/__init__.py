"""Where two epochs differ, while a person is to say whether the new one takes over: by window, without the rows."""
