"""A run to be watched while it goes on, and a finished one to be stepped through: a page that this machine alone can open.

views.py says what every view shows, records.py what that of a comparison does, from what a run tells (experiment/observer.py), grids.py
that of a reproduction; stand.py keeps the newest of it; server.py gives it to browsers. Charts, bars, tables and maps are the records and the scripts of the page of a run (report/).
"""
