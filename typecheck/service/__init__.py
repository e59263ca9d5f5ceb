"""anyshape as a service: models are sent to it, checked in worker processes, and their reports kept.

`app.py` is the HTTP API and the way in. It needs the extra `anyshape[service]`; nothing outside of this
folder imports it but the commands that start it.
"""
