"""What a compiler says about one kernel on one target."""

from dataclasses import asdict, dataclass


@dataclass
class Resources:
    registers: int  # a lane (NVIDIA, AMD) or an EU thread's file (Intel)
    width: int  # lanes of a warp, wave or EU thread
    spill_bytes: int  # registers that went to memory, of one lane (Intel: of one EU thread)
    private_bytes: int = 0  # other private memory that is no register
    static_local_bytes: int = 0  # beside what the launch asks for
    scalar_spills: int = 0  # AMD: scalar registers kept in lanes of a vector register; no memory is involved

    def to_json(self):
        return asdict(self)
