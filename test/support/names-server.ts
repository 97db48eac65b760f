/** A DNS server that answers every name with one address, or does not answer. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

const TYPE_A = 1;
const HEADER_BYTES = 12;

export type NamesServer = {
  readonly address: string;
  /** First labels of the queried names. */
  readonly queried_names: ReadonlySet<string>;
  /** Sets the answer. `NXDOMAIN`: the name does not exist; undefined: no answer. */
  answer(address: string | undefined): void;
  stop(): void;
};

export async function startNamesServer(): Promise<NamesServer> {
  let told: string | undefined;
  const asked = new Set<string>();
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    asked.add(query.subarray(HEADER_BYTES + 1, HEADER_BYTES + 1 + query[HEADER_BYTES]!).toString());
    if (told) socket.send(answerTo(query, told), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    queried_names: asked,
    answer: (address) => {
      told = address;
    },
    stop: () => void socket.close(),
  };
}

/** Builds the answer: the query, followed by the address if the query is for an IPv4 address. */
function answerTo(query: Buffer, address: string): Buffer {
  let end = HEADER_BYTES;
  while (query[end] !== 0) end += query[end]! + 1;
  const question = query.subarray(HEADER_BYTES, end + 5);
  const isNowhere = address === 'NXDOMAIN';
  const isAsked = query.readUInt16BE(end + 1) === TYPE_A && !isNowhere;
  const header = Buffer.from([
    query[0]!,
    query[1]!,
    0x81,
    isNowhere ? 0x83 : 0x80,
    0,
    1,
    0,
    isAsked ? 1 : 0,
    0,
    0,
    0,
    0,
  ]);
  const bytes = address.split('.').map(Number);
  const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4, ...bytes]);
  return Buffer.concat([header, question, ...(isAsked ? [record] : [])]);
}
