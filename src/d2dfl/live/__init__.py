"""A run to be watched while it goes on, and a finished one to be stepped through: a page that this machine alone can open.

records.py says what is shown, from what a run tells (experiment/observer.py); stand.py keeps the newest of it; server.py gives it to
browsers. Charts, bars, tables and maps are the records and the scripts of the page of a run (report/).
"""
