"""Measures pawl beside the loop that one would write by hand and beside PostgreSQL's own limit.

A *task* is one thing that can be measured: an experiment names the tasks that it needs, main.py runs
those of all chosen experiments in turn, and what they measured is kept as records, from which the
experiment makes its table and its plot.

    arguments.py    the command line
    options.py      what was asked for
    processes.py    children: run, watch, end; their CPU time and memory
    site.py         the private servers, their databases and topics
    modes.py        what is compared: the table of modes
    consume.py      task: one mode applies the payments
    calls.py        task: handlers that make external calls
    limit.py        task: pgbench does the same statements
    pgbench.py      pgbench and its report
    timing.py       tasks: produce to commit, hand-over, start, the flush
    experiment.py   what an experiment is: which tasks it needs, and how it shows them
    throughput.py   experiments: messages per second, CPU
    dimension.py    experiments: partitions, workers, latency, processes, keys
    times.py        experiments: end to end, hand-over, start, memory
    experiments.py  all of them
    records.py      what was measured, kept as JSON
    tables.py       tables as text and as Markdown
    plots.py        plots as SVG
"""
