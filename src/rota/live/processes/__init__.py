"""The processes of jobs: the launcher, their supervisors and the records they leave."""
