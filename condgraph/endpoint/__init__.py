"""The SPARQL endpoint: an application for HTTP servers, and the server that keeps slow clients
apart from good ones.
"""
