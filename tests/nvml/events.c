/* Event sets: what is added to the events file after a set was made is told to it once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_in.h"

enum { POLL_MS = 5 };

struct registration { char uuid[80]; u64 types; };
struct set { long offset; int count; struct registration registration[MAX_DEVICES]; };
struct event { handle_t device; u64 type, data; u32 gpu_instance, compute_instance; };

static FILE *open_events(const char *mode) {
    char path[1024];
    return fopen(state_path(".events", path, sizeof path), mode);
}

int nvmlEventSetCreate(struct set **out) {
    struct state *state;
    int code = begin(__func__, &state);
    end(state);
    if (code) return code;
    *out = calloc(1, sizeof **out);
    FILE *file = open_events("r");
    if (file) {
        fseek(file, 0, SEEK_END);
        (*out)->offset = ftell(file);
        fclose(file);
    }
    return OK;
}

int nvmlEventSetFree(struct set *set) { free(set); return OK; }

int nvmlDeviceRegisterEvents(handle_t handle, u64 types, struct set *set) {
    struct state *state;
    struct device *device;
    int code = about(__func__, handle, &state, &device);
    if (!code && device->parent != WHOLE) code = NOT_SUPPORTED;
    if (!code) {
        struct registration *next = &set->registration[set->count++];
        strcpy(next->uuid, device->uuid);
        next->types = types;
    }
    end(state);
    return code;
}

static int wants(const struct set *set, const char *uuid, u64 type) {
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->registration[i].uuid, uuid) && set->registration[i].types & type) return 1;
    return 0;
}

static int next_event(struct set *set, struct event *out) {
    char line[200], uuid[80];
    int found = 0;
    FILE *file = open_events("r");
    if (!file) return 0;
    fseek(file, set->offset, SEEK_SET);
    while (!found && fgets(line, sizeof line, file) && strchr(line, '\n')) {
        set->offset = ftell(file);
        found = sscanf(line, "%79s %llu %llu", uuid, &out->type, &out->data) == 3 &&
                wants(set, uuid, out->type);
    }
    fclose(file);
    if (found) out->device = handle_of(uuid);
    return found;
}

/* A real driver wakes whoever waits; here the file is looked at, and a measurement wants that rarely. */
static u32 poll_ms(void) {
    const char *given = getenv("NVML_STAND_IN_POLL_MS");
    return given ? (u32)atoi(given) : POLL_MS;
}

int nvmlEventSetWait_v2(struct set *set, struct event *out, u32 timeout_ms) {
    struct state *state;
    int code = begin(__func__, &state);
    memset(out, 0, sizeof *out);
    out->gpu_instance = out->compute_instance = ~0u;
    for (u32 waited = 0; !code && !next_event(set, out); waited += poll_ms()) {
        if (waited >= timeout_ms) code = TIMEOUT;
        usleep(poll_ms() * 1000);
    }
    end(state);
    return code;
}
