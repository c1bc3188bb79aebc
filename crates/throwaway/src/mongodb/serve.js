// Serves MongoDB's engine, which listens on a socket of its own in this process, on a port of 127.0.0.1.
//
//   node serve.js ENGINE DIRECTORY PORT
'use strict';

const net = require('node:net');

const [enginePath, directory, port] = process.argv.slice(2);

require(enginePath).open(directory).then((engine) => {
  const server = net.createServer((client) => {
    const inner = net.connect(engine.socketPath);
    const end = () => [client, inner].forEach((socket) => socket.destroy());
    for (const [from, to] of [[client, inner], [inner, client]]) {
      from.setNoDelay(true);
      from.on('error', end).on('close', end).pipe(to);
    }
  });
  server.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
  server.listen(Number(port), '127.0.0.1', () => console.error('Waiting for connections'));
});
