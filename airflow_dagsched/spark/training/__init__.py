"""A small application that has Java load what drivers of launches load: an archive of classes is written as it ends.

It is the maker's (``class_archives.make``), which submits ``main.py`` with a folder for what it writes.
"""
