"""System metrics: the use of processors, memory, network and disks, sample by sample."""
