// herring: NCCL's calls as far as Herring uses them, for machines without nccl.h: declarations alone, as NCCL 2.14 has them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CUDA_STAND_IN_NCCL_NCCL_H
#define HERRING_TESTS_CUDA_STAND_IN_NCCL_NCCL_H

#include <limits.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#define NCCL_VERSION_CODE 21400

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm* ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7
} ncclResult_t;

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;

typedef enum {
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
    ncclNumTypes = 10
} ncclDataType_t;

typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                                              \
    { sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, INT_MIN }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* now);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
char const* ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(void const* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t by,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(void const* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t by,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(void const* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif // HERRING_TESTS_CUDA_STAND_IN_NCCL_NCCL_H
