/* Divided devices and their parts. */
#include <stddef.h>
#include <string.h>

#include "stand_in.h"

enum { MOST_PARTS = 7 };

int nvmlDeviceGetMigMode(handle_t handle, u32 *current, u32 *pending) {
    struct state *state;
    struct device *device;
    u64 value = 0;
    int code = about(__func__, handle, &state, &device);
    if (!code && device->parent != WHOLE) device = &state->device[device->parent];
    if (!code) code = read_number(device, "mig", &value);
    end(state);
    *current = *pending = (u32)value;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(handle_t handle, u32 *count) {
    struct state *state;
    struct device *device;
    u64 value;
    int code = about(__func__, handle, &state, &device);
    *count = !code && !read_number(device, "mig", &value) ? MOST_PARTS : 0;
    end(state);
    return code;
}

/* Slots have holes: what is not there is "not found", and the next one may be. */
int nvmlDeviceGetMigDeviceHandleByIndex(handle_t handle, u32 slot, handle_t *part) {
    struct state *state;
    struct device *device;
    int code = about(__func__, handle, &state, &device);
    *part = NULL;
    for (int i = 0; !code && i < state->count; i++) {
        struct device *found = &state->device[i];
        if (found->parent != WHOLE && &state->device[found->parent] == device && found->slot == slot)
            *part = handle_of(found->uuid);
    }
    end(state);
    return code ? code : *part ? OK : NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(handle_t handle, u32 *out) {
    struct state *state;
    struct device *device;
    int code = about(__func__, handle, &state, &device);
    if (!code) *out = device->parent != WHOLE;
    end(state);
    return code;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle_t handle, handle_t *whole) {
    struct state *state;
    struct device *device;
    int code = about(__func__, handle, &state, &device);
    if (!code && device->parent == WHOLE) code = INVALID_ARGUMENT;
    if (!code) *whole = handle_of(state->device[device->parent].uuid);
    end(state);
    return code;
}

static int instance(const char *call, handle_t handle, const char *key, u32 *out) {
    struct state *state;
    struct device *device;
    u64 value = 0;
    int code = about(call, handle, &state, &device);
    if (!code) code = read_number(device, key, &value);
    end(state);
    *out = (u32)value;
    return code;
}
int nvmlDeviceGetGpuInstanceId(handle_t h, u32 *out) { return instance(__func__, h, "gi", out); }
int nvmlDeviceGetComputeInstanceId(handle_t h, u32 *out) { return instance(__func__, h, "ci", out); }
