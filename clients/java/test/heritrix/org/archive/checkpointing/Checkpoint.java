package org.archive.checkpointing;

public class Checkpoint { }
