package org.springframework.context;

import java.util.EventObject;

public abstract class ApplicationEvent extends EventObject {
    private static final long serialVersionUID = 1;

    public ApplicationEvent(Object source)
    {
        super(source);
    }
}
