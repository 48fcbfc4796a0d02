"""`mindspore.common`: the part that stream programs reach for."""
