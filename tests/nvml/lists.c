/* Who is on a device. Three versions of the entry are about, and drivers that mixed them up. */
#include <stddef.h>
#include <string.h>

#include "stand_in.h"

static const u32 NO_INSTANCE = ~0u;

struct list { char name; size_t stride; };

/* An entry has 16 bytes (pid, memory), 24 (and both instances) or 32 (and protected memory). */
static void put(char *entry, size_t stride, const struct process *process, const u32 instances[2]) {
    u64 bytes = process->bytes;
    memset(entry, 0, stride);
    memcpy(entry, &process->pid, sizeof process->pid);
    memcpy(entry + 8, &bytes, sizeof bytes);
    if (stride >= 24) memcpy(entry + 16, instances, 2 * sizeof *instances);
}

static int belongs(struct state *state, struct device *one, struct device *to) {
    return one == to || (one->parent != WHOLE && &state->device[one->parent] == to);
}

/* How many there are; as many as there is room for are written. A divided device lists its parts' too. */
static u32 fill(struct state *state, struct device *device, struct list list, char *out, u32 room) {
    u32 found = 0;
    for (int i = 0; i < state->count; i++) {
        struct device *one = &state->device[i];
        u64 gi = NO_INSTANCE, ci = NO_INSTANCE;
        if (!belongs(state, one, device)) continue;
        read_number(one, "gi", &gi);
        read_number(one, "ci", &ci);
        for (int k = 0; k < one->processes; k++) {
            u32 instances[2] = {(u32)gi, (u32)ci};
            if (one->process[k].list != list.name) continue;
            if (found < room) put(out + found * list.stride, list.stride, &one->process[k], instances);
            found++;
        }
    }
    return found;
}

static int processes(const char *call, handle_t handle, u32 *count, char *out, struct list list) {
    struct state *state;
    struct device *device;
    u64 needed = 0;
    int code = about(call, handle, &state, &device);
    u32 room = out ? *count : 0;
    if (!code && !list.stride) list.stride = state->v3_stride;
    if (!code) *count = fill(state, device, list, NULL, 0);
    if (!code) read_number(device, "need_room", &needed);
    if (!code && (*count > room || (*count && needed > room))) code = INSUFFICIENT_SIZE;
    if (!code) fill(state, device, list, out, room);
    end(state);
    return code;
}

#define LIST(CALL, NAME, STRIDE) \
    int CALL(handle_t handle, u32 *count, void *out) { \
        return processes(#CALL, handle, count, out, (struct list){NAME, STRIDE}); \
    }
LIST(nvmlDeviceGetComputeRunningProcesses, 'c', 16)
LIST(nvmlDeviceGetGraphicsRunningProcesses, 'g', 16)
#if DRIVER >= 460
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 'c', 24)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g', 24)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'm', 24)
#endif
#if DRIVER >= 510
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'c', 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g', 0)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm', 0)
#endif
