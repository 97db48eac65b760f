/** Reads over plain sockets, which cost little CPU. Each socket has one read in progress. */
import { createConnection, type Socket } from 'node:net';

type Opened = { readonly url: string; readonly api_key: string; readonly connections: number };
type Waiting = { readonly path: string; readonly due: number; done(): void; failed(error: Error): void };

export class Readers {
  readonly took_ms: number[] = [];
  readonly #free: Reader[] = [];
  readonly #waiting: Waiting[] = [];
  #next = 0;

  async open({ url, api_key, connections }: Opened): Promise<void> {
    const urls = url.split(' ');
    for (let n = 0; n < connections; n++)
      this.#free.push(await Reader.connect(new URL(urls[n % urls.length]!), api_key));
  }

  /** If all sockets are busy, the read waits; its time counts from when it was due. */
  read(path: string, due: number): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ path, due, done, failed });
      this.#start();
    });
  }

  #start(): void {
    while (this.#next < this.#waiting.length && this.#free.length > 0) {
      const reader = this.#free.pop()!;
      const { path, due, done, failed } = this.#waiting[this.#next++]!;
      if (this.#next === this.#waiting.length) this.#next = this.#waiting.length = 0;
      void reader.get(path).then(({ status, body }) => {
        if (status !== 200) return failed(new Error(`${path}: ${status} ${body}`));
        this.took_ms.push(performance.now() - due);
        this.#free.push(reader);
        done();
        this.#start();
      });
    }
  }

  close(): void {
    for (const reader of this.#free) reader.close();
  }
}

type Answer = { readonly status: number; readonly body: string };

class Reader {
  readonly #socket: Socket;
  readonly #head: string;
  #text = '';
  #answered: ((answer: Answer) => void) | null = null;

  static connect({ hostname, port }: URL, key: string): Promise<Reader> {
    return new Promise((resolve) => {
      const socket = createConnection({ host: hostname, port: Number(port), noDelay: true }, () =>
        resolve(new Reader(socket, ` HTTP/1.1\r\nHost: ${hostname}\r\nx-api-key: ${key}\r\n\r\n`)),
      );
    });
  }

  constructor(socket: Socket, head: string) {
    this.#socket = socket;
    this.#head = head;
    socket.setEncoding('latin1').on('data', (text: string) => this.#heard(text));
  }

  get(path: string): Promise<Answer> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#socket.write(`GET ${path}${this.#head}`);
    });
  }

  #heard(text: string): void {
    this.#text += text;
    const end = this.#text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#text)![1]);
    if (this.#text.length < end + 4 + length) return;
    const answer = { status: Number(this.#text.slice(9, 12)), body: this.#text.slice(end + 4) };
    this.#text = '';
    this.#answered!(answer);
  }

  close(): void {
    this.#socket.destroy();
  }
}
