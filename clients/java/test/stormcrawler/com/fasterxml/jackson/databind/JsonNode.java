package com.fasterxml.jackson.databind;

public abstract class JsonNode {
    public abstract JsonNode get(String name);

    public abstract String asText();
}
