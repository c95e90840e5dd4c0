"""Training, tuning and judging of what the reference learns; it lives beside the package ``kuayu``, outside the wheel.

Nothing of the package imports it. In a clone it is importable as the packages are; it needs the extra ``training``.
``python -m kuayu_training`` trains what ships as weights. For researchers:

- ``scheduling``: a learning environment, and training and tuning of scheduling policies in it;
- ``demand``, ``forecast``, ``resilience``: judging by public data, and fitting, of what the reference knows of them;
- modules here: worlds in which the recogniser of node states learns, and its network.
"""
