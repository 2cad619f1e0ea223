package org.archive.checkpointing;

import java.io.IOException;

public interface Checkpointable {
    void startCheckpoint(Checkpoint c);

    void doCheckpoint(Checkpoint c) throws IOException;

    void finishCheckpoint(Checkpoint c);

    void setRecoveryCheckpoint(Checkpoint c);
}
