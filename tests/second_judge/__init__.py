"""A second judge of figures, written from the text, which shares no code with the suite.

It reads what the suite wrote (transcript and report), what the standard publishes (the register) and the tables of
measurements that verdicts name, and comes to figures, bounds and numbers of observations by itself. Nothing here
imports the suite, the reference, or what is generated, and ``test_independence`` holds it to that. Each module judges
requirements of one clause and says where in the text its rules stand.
"""
