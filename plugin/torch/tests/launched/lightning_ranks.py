"""Lightning's Trainer with DDP, which starts the second rank by itself; then with FSDP."""

import sys

import torch
import torch_ocl  # noqa: F401
from launched_case import ROWS, answer, error, network, rows, used
from lightning import pytorch as pl
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

hooked = []


def hook(state, bucket):
    hooked.append(bucket.index())
    return default_hooks.allreduce_hook(state, bucket)


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = network()
        self.losses: list[torch.Tensor] = []
        self.wrapped = ""

    def training_step(self, batch, index):
        self.wrapped = type(self.trainer.strategy.model).__name__
        loss = error(self.network, batch)
        self.losses.append(self.all_gather(loss.detach()).mean().cpu())
        return loss

    def train_dataloader(self):
        """Ranks take rows in turn and in order: those of a joint batch make a joint batch."""
        x = rows()
        sampler = torch.utils.data.DistributedSampler(
            x, self.trainer.world_size, self.trainer.global_rank, shuffle=False
        )
        return torch.utils.data.DataLoader(x, ROWS // 2, sampler=sampler)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1, momentum=0.9)


def train(strategy):
    model = Module()
    trainer = pl.Trainer(
        accelerator="ocl",
        devices=2,
        strategy=strategy,
        max_epochs=1,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model)
    state = trainer.strategy.lightning_module_state_dict()  # whole on the first rank, or on all
    return trainer.global_rank, {
        "device": str(trainer.strategy.root_device),
        "model": model.wrapped,
        "losses": torch.stack(model.losses),
        **{name.removeprefix("network."): value.cpu() for name, value in state.items()},
    }


rank, ddp = train(DDPStrategy(ddp_comm_hook=hook))
_, fsdp = train(FSDPStrategy())
answer(sys.argv[1], rank, ddp=ddp, fsdp=fsdp, hooked=len(hooked), **used())
