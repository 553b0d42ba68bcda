"""The pager's own part: what leaves for destinations, what is reached, the process. No task and no executor imports it."""
