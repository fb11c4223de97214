/* A stand-in for libnvidia-ml.so.1, for the unmodified pynvml, driven by the text file $NVML_STAND_IN.
 *
 *   init CODE                  what nvmlInit answers (default 0)
 *   gpu UUID [key=value ...]   a device; keys: minor bus name total used reserved util temp power limit
 *                              fan clock ecc throttle (a missing one is "not supported"),
 *                              error=CODE for every call about it, hang_ms=N before each
 *   proc PID BYTES [graphics]  a process on the last device
 *
 * Read anew at every call. With -DOLD_DRIVER the calls that came with driver 510 and later are missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef unsigned int u32;

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
#define MAX_GPUS 16
#define MAX_PROCS 64

struct proc { u32 pid; u64 bytes; int graphics; };
struct gpu { char uuid[80]; char keys[1024]; int count; struct proc procs[MAX_PROCS]; };
struct state { int init; int count; struct gpu gpus[MAX_GPUS]; };
/* What pynvml calls nvmlProcessInfo_v2_t and _v3_t. */
struct info { u32 pid; u64 bytes; u32 gpu_instance; u32 compute_instance; };

static char names[MAX_GPUS][80];

static struct state *read_state(void) {
    struct state *state = calloc(1, sizeof *state);
    const char *path = getenv("NVML_STAND_IN");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1200], word[16];
    while (file && fgets(line, sizeof line, file)) {
        struct gpu *last = state->count ? &state->gpus[state->count - 1] : NULL;
        struct proc found = {0};
        if (sscanf(line, "init %d", &state->init) == 1) continue;
        if (sscanf(line, "proc %u %llu", &found.pid, &found.bytes) == 2 && last) {
            found.graphics = sscanf(line, "proc %*u %*u %15s", word) == 1;
            last->procs[last->count++] = found;
        }
        struct gpu *next = &state->gpus[state->count];
        if (sscanf(line, "gpu %79s %1000[^\n]", next->uuid, next->keys) >= 1) state->count++;
    }
    if (file) fclose(file);
    return state;
}

static const char *key(struct gpu *gpu, const char *name, char *buffer) {
    char *copy = strdup(gpu->keys), *rest = copy, *word;
    const char *found = NULL;
    size_t length = strlen(name);
    while ((word = strsep(&rest, " ")))
        if (!strncmp(word, name, length) && word[length] == '=')
            found = strcpy(buffer, word + length + 1);
    free(copy);
    return found;
}

/* The device behind a handle (its name, so that it stays good when others go), or an error. */
static int with(const char *handle, int (*answer)(struct gpu *, const char *, void *),
                const char *name, void *out) {
    struct state *state = read_state();
    char buffer[1024];
    int code = 15; /* lost: it was there when the handle was made */
    for (int i = 0; i < state->count; i++) {
        struct gpu *gpu = &state->gpus[i];
        if (strcmp(gpu->uuid, handle)) continue;
        if (key(gpu, "hang_ms", buffer)) usleep(atoi(buffer) * 1000);
        code = key(gpu, "error", buffer) ? atoi(buffer) : answer(gpu, name, out);
    }
    free(state);
    return code;
}

static int number(struct gpu *gpu, const char *name, void *out) {
    char buffer[1024];
    if (!key(gpu, name, buffer)) return NOT_SUPPORTED;
    *(u64 *)out = strtoull(buffer, NULL, 10);
    return OK;
}

static int text(struct gpu *gpu, const char *name, void *out) {
    return key(gpu, name, out) ? OK : NOT_SUPPORTED;
}

static int small(const char *handle, const char *name, u32 *out) {
    u64 value = 0;
    int code = with(handle, number, name, &value);
    *out = (u32)value;
    return code;
}

int nvmlInitWithFlags(u32 flags) {
    struct state *state = read_state();
    int code = state->init;
    (void)flags;
    free(state);
    return code;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "a stand-in's error"; }

int nvmlDeviceGetCount_v2(u32 *count) {
    struct state *state = read_state();
    *count = state->count;
    free(state);
    return OK;
}

static int handle_of(const char *uuid, const char **handle) {
    for (int i = 0; i < MAX_GPUS; i++) {
        if (!names[i][0]) strcpy(names[i], uuid);
        if (!strcmp(names[i], uuid)) { *handle = names[i]; return OK; }
    }
    return INVALID;
}
int nvmlDeviceGetHandleByIndex_v2(u32 index, const char **handle) {
    struct state *state = read_state();
    int code = index < (u32)state->count ? handle_of(state->gpus[index].uuid, handle) : INVALID;
    free(state);
    return code;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, const char **handle) {
    struct state *state = read_state();
    int code = NOT_FOUND;
    for (int i = 0; i < state->count; i++)
        if (!strcmp(state->gpus[i].uuid, uuid)) code = handle_of(uuid, handle);
    free(state);
    return code;
}
int nvmlDeviceGetUUID(const char *handle, char *out, u32 size) {
    snprintf(out, size, "%s", handle);
    return OK;
}
int nvmlDeviceGetName(const char *handle, char *out, u32 size) {
    (void)size;
    return with(handle, text, "name", out);
}
int nvmlDeviceGetPciInfo_v3(const char *handle, char *out) {
    return with(handle, text, "bus", out + 36); /* busId comes after the legacy one and five u32 */
}
int nvmlDeviceGetMinorNumber(const char *h, u32 *out) { return small(h, "minor", out); }
int nvmlDeviceGetTemperature(const char *h, u32 s, u32 *out) { (void)s; return small(h, "temp", out); }
int nvmlDeviceGetPowerUsage(const char *h, u32 *out) { return small(h, "power", out); }
int nvmlDeviceGetEnforcedPowerLimit(const char *h, u32 *out) { return small(h, "limit", out); }
int nvmlDeviceGetFanSpeed(const char *h, u32 *out) { return small(h, "fan", out); }
int nvmlDeviceGetClockInfo(const char *h, u32 t, u32 *out) { (void)t; return small(h, "clock", out); }
int nvmlDeviceGetUtilizationRates(const char *h, u32 *out) { out[1] = 0; return small(h, "util", out); }
int nvmlDeviceGetTotalEccErrors(const char *h, u32 e, u32 c, u64 *out) {
    (void)e; (void)c;
    return with(h, number, "ecc", out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(const char *h, u64 *out) {
    return with(h, number, "throttle", out);
}
int nvmlDeviceGetMemoryInfo(const char *h, u64 *out) {
    int code = with(h, number, "total", out);
    return code ? code : with(h, number, "used", out + 2);
}

struct wanted { u32 *count; struct info *out; int graphics; };
static int list(struct gpu *gpu, const char *name, void *argument) {
    struct wanted *wanted = argument;
    u32 found = 0;
    (void)name;
    for (int i = 0; i < gpu->count; i++) found += gpu->procs[i].graphics == wanted->graphics;
    u32 room = wanted->out ? *wanted->count : 0;
    *wanted->count = found;
    if (found > room) return INSUFFICIENT_SIZE;
    for (int i = 0; i < gpu->count; i++)
        if (gpu->procs[i].graphics == wanted->graphics)
            *wanted->out++ = (struct info){gpu->procs[i].pid, gpu->procs[i].bytes, ~0u, ~0u};
    return OK;
}
static int processes(const char *handle, u32 *count, struct info *out, int graphics) {
    struct wanted wanted = {count, out, graphics};
    return with(handle, list, "", &wanted);
}
int nvmlDeviceGetComputeRunningProcesses_v2(const char *h, u32 *count, struct info *out) {
    return processes(h, count, out, 0);
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(const char *h, u32 *count, struct info *out) {
    return processes(h, count, out, 1);
}

#ifndef OLD_DRIVER
int nvmlDeviceGetComputeRunningProcesses_v3(const char *h, u32 *count, struct info *out) {
    return processes(h, count, out, 0);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(const char *h, u32 *count, struct info *out) {
    return processes(h, count, out, 1);
}
int nvmlDeviceGetCurrentClocksEventReasons(const char *h, u64 *out) {
    return with(h, number, "throttle", out);
}
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(const char *h, struct memory_v2 *out) {
    int code = with(h, number, "total", &out->total);
    if (!code) code = with(h, number, "used", &out->used);
    return code ? code : with(h, number, "reserved", &out->reserved);
}
#endif
