"""llama.cpp's own HTTP server out of the xllamacpp wheel: serve.py MODEL PORT none|ngram."""

import signal
import sys
import threading

import xllamacpp

model, port, speculation = sys.argv[1], int(sys.argv[2]), sys.argv[3]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {"smollm2-135m"}
params.hostnames = ["127.0.0.1"]
params.port = port
params.n_parallel = 4
params.n_ctx = 32768
params.cpuparams.n_threads = 2
params.endpoint_metrics = True
params.endpoint_slots = True
params.endpoint_props = True
params.offline = True
params.ui = False
if speculation == "ngram":
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    params.speculative.ngram_simple.size_n = 3
    params.speculative.ngram_simple.size_m = 8

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
server = xllamacpp.Server(params)
print("LISTENING", server.listening_address, flush=True)
stop.wait()
