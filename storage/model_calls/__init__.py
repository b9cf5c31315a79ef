"""What requests to models leave behind: spending, answers, failures."""
