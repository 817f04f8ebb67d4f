"""A custom node folder of ComfyUI without nodes: prestartup_script.py makes ComfyUI use ocl."""

NODE_CLASS_MAPPINGS: dict[str, type] = {}
