/* The calls about figures and identities. DRIVER is the age of the driver: calls that came later are missing. */
#include <stdio.h>
#include <string.h>

#include "stand_in.h"

int nvmlInitWithFlags(u32 flags) { (void)flags; return initialise("nvmlInit"); }
int nvmlInit_v2(void) { return initialise("nvmlInit"); }
int nvmlShutdown(void) { return shut_down(); }

const char *nvmlErrorString(int code) {
    switch (code) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case FUNCTION_NOT_FOUND: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case RESET_REQUIRED: return "GPU requires restart";
    case VERSION_MISMATCH: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

/* One figure of a device, or of a whole device only: parts have no sensors of their own. */
static int number(const char *call, handle_t handle, const char *key, u64 *out) {
    struct state *state;
    struct device *device;
    int code = about(call, handle, &state, &device);
    if (!code) code = read_number(device, key, out);
    end(state);
    return code;
}

static int small(const char *call, handle_t handle, const char *key, u32 *out) {
    u64 value;
    int code = number(call, handle, key, &value);
    if (!code) *out = (u32)value;
    return code;
}

static int text(const char *call, handle_t handle, const char *key, char *out, u32 size) {
    struct state *state;
    struct device *device;
    int code = about(call, handle, &state, &device);
    if (!code) code = read_text(device, key, out, size);
    end(state);
    return code;
}

int nvmlSystemGetDriverVersion(char *out, u32 size) {
    struct state *state;
    int code = begin(__func__, &state);
    if (!code) snprintf(out, size, "%s", state->driver);
    end(state);
    return code;
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 12080; return OK; }

int nvmlDeviceGetCount_v2(u32 *count) {
    struct state *state;
    int code = begin(__func__, &state);
    for (*count = 0; !code && nth_gpu(state, *count); ) ++*count;
    end(state);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, handle_t *handle) {
    struct state *state;
    int code = begin(__func__, &state);
    struct device *device = code ? NULL : nth_gpu(state, index);
    if (!code) code = device ? rule_of(&device->rules, __func__, 0) : INVALID_ARGUMENT;
    if (!code) *handle = handle_of(device->uuid);
    end(state);
    return code;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t *handle) {
    struct state *state;
    int code = begin(__func__, &state), found = 0;
    for (int i = 0; !code && i < state->count; i++)
        if (!strcmp(state->device[i].uuid, uuid)) {
            code = rule_of(&state->device[i].rules, __func__, 0);
            *handle = handle_of(uuid);
            found = 1;
        }
    end(state);
    return code ? code : found ? OK : NOT_FOUND;
}

int nvmlDeviceGetUUID(handle_t handle, char *out, u32 size) {
    struct state *state;
    struct device *device;
    int code = about(__func__, handle, &state, &device);
    if (!code) snprintf(out, size, "%s", device->uuid);
    end(state);
    return code;
}

int nvmlDeviceGetIndex(handle_t handle, u32 *out) {
    struct state *state;
    struct device *device;
    int code = about(__func__, handle, &state, &device);
    if (!code && device->parent != WHOLE) *out = device->slot;
    if (!code && device->parent == WHOLE)
        for (*out = 0; nth_gpu(state, *out) != device; ) ++*out;
    end(state);
    return code;
}

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(handle_t handle, struct pci *out) {
    memset(out, 0, sizeof *out);
    int code = text(__func__, handle, "bus", out->bus_id, sizeof out->bus_id);
    if (!code) sscanf(out->bus_id, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    return code;
}

int nvmlDeviceGetName(handle_t h, char *out, u32 size) { return text(__func__, h, "name", out, size); }
int nvmlDeviceGetMinorNumber(handle_t h, u32 *out) { return small(__func__, h, "minor", out); }
int nvmlDeviceGetDisplayActive(handle_t h, u32 *out) { return small(__func__, h, "display", out); }
int nvmlDeviceGetPersistenceMode(handle_t h, u32 *out) { return small(__func__, h, "persistence", out); }
int nvmlDeviceGetPowerUsage(handle_t h, u32 *out) { return small(__func__, h, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(handle_t h, u32 *out) { return small(__func__, h, "limit", out); }
int nvmlDeviceGetPowerManagementLimit(handle_t h, u32 *out) { return small(__func__, h, "limit", out); }
int nvmlDeviceGetFanSpeed(handle_t h, u32 *out) { return small(__func__, h, "fan", out); }
int nvmlDeviceGetTemperature(handle_t h, u32 sensor, u32 *out) {
    return sensor ? INVALID_ARGUMENT : small(__func__, h, "temp", out);
}
int nvmlDeviceGetClockInfo(handle_t h, u32 type, u32 *out) {
    return type > 3 ? INVALID_ARGUMENT : small(__func__, h, "clock", out);
}
int nvmlDeviceGetTotalEccErrors(handle_t h, u32 error, u32 counter, u64 *out) {
    return error > 1 || counter > 1 ? INVALID_ARGUMENT : number(__func__, h, "ecc", out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(handle_t h, u64 *out) {
    return number(__func__, h, "throttle", out);
}

int nvmlDeviceGetUtilizationRates(handle_t handle, u32 *out) {
    struct state *state;
    struct device *device;
    u64 value = 0;
    int code = about(__func__, handle, &state, &device);
    if (!code && (device->parent != WHOLE || (!read_number(device, "mig", &value) && value)))
        code = NOT_SUPPORTED; /* neither of a divided device nor of its parts */
    if (!code) code = read_number(device, "util", &value);
    end(state);
    out[0] = (u32)value;
    out[1] = 0;
    return code;
}

struct memory { u64 total, reserved, free, used; };
static int memory(const char *call, handle_t handle, struct memory *out) {
    struct state *state;
    struct device *device;
    memset(out, 0, sizeof *out);
    int code = about(call, handle, &state, &device);
    if (!code) code = read_number(device, "total", &out->total);
    if (!code) code = read_number(device, "used", &out->used);
    if (!code) read_number(device, "reserved", &out->reserved);
    end(state);
    out->free = out->total - out->reserved - out->used;
    return code;
}
int nvmlDeviceGetMemoryInfo(handle_t handle, u64 *out) {
    struct memory found;
    int code = memory(__func__, handle, &found);
    out[0] = found.total;
    out[1] = found.free;
    out[2] = found.used + found.reserved; /* version 1 counts the driver's share as used */
    return code;
}

#if DRIVER >= 510
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(handle_t handle, struct memory_v2 *out) {
    struct memory found;
    if (out->version != (sizeof *out | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    int code = memory(__func__, handle, &found);
    out->total = found.total;
    out->reserved = found.reserved;
    out->free = found.free;
    out->used = found.used;
    return code;
}
#endif
#if DRIVER >= 535
int nvmlDeviceGetCurrentClocksEventReasons(handle_t h, u64 *out) {
    return number(__func__, h, "throttle", out);
}
#endif
