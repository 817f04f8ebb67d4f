"""accelerate trains a network by its launcher's ranks: DDP, also with a scaler, and FSDP2."""

import sys

import torch
import torch_ocl  # noqa: F401
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.state import AcceleratorState, PartialState
from launched_case import ROWS, answer, error, network, rows, used


def train(**options):
    AcceleratorState._reset_state(True)
    accelerator = Accelerator(**options)
    batches = torch.utils.data.DataLoader(rows(), batch_size=ROWS // accelerator.num_processes)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    losses = []
    for x in batches:
        loss = error(model, x)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach()).mean().cpu())
    state = accelerator.get_state_dict(model)  # whole on the first rank, or on all
    return {
        "model": type(model).__name__,
        "device": str(x.device),
        "type": accelerator.distributed_type.value,
        "scaler": str(accelerator.scaler and accelerator.scaler._device),
        "losses": torch.stack(losses),
        **{name.removeprefix("module."): value.cpu() for name, value in state.items()},
    }


results = {
    "ddp": train(),
    "fp16": train(mixed_precision="fp16"),
    "fsdp2": train(
        fsdp_plugin=FullyShardedDataParallelPlugin(
            fsdp_version=2, state_dict_type="FULL_STATE_DICT", auto_wrap_policy="NO_WRAP"
        )
    ),
}
state = PartialState()
state.wait_for_everyone()
answer(sys.argv[1], state.process_index, **results, **used())
state.destroy_process_group()
