/**
 * Sends each request when it is due, even if earlier requests are unanswered. A service that is slightly too slow therefore accumulates a
 * backlog, as it would with real clients.
 */
import { Agent, request } from 'node:http';
import { pause } from './processes.ts';
import { fixed, quantile } from './report.ts';

/** `path` is relative to the base URL of the service. */
export type RequestInput = { method: 'GET' | 'POST' | 'PUT' | 'DELETE'; path: string; body?: object };
export type Due<Kind> = { kind: Kind; request: RequestInput };
export type Answered<Kind> = { kind: Kind; status: number; ms: number; second: number };
export type Service = { readonly url: string; readonly api_key: string };

const CONNECTIONS = 256;

type DueLoad = { readonly seconds: number; readonly rate: number; readonly connections?: number };

export async function sendWhenDue<Kind>(
  service: Service,
  { seconds, rate, connections = CONNECTIONS }: DueLoad,
  next: () => Due<Kind>,
): Promise<Answered<Kind>[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const answers: Promise<Answered<Kind>>[] = [];
  const began = performance.now();
  for (let count = 0; count < seconds * rate; count++) {
    const due = (count * 1000) / rate - (performance.now() - began);
    if (due > 0) await pause(due);
    const { kind, request: asked } = next();
    const second = Math.floor(count / rate);
    answers.push(send(service, agent, asked).then((answer) => ({ kind, second, ...answer })));
  }
  const all = await Promise.all(answers);
  agent.destroy();
  return all;
}

export function send(service: Service, agent: Agent, asked: RequestInput): Promise<{ status: number; ms: number }> {
  const began = performance.now();
  const headers = { 'x-api-key': service.api_key, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(`${service.url}${asked.path}`, { method: asked.method, headers, agent }, (response) => {
      response.resume();
      response.once('end', () => resolve({ status: response.statusCode!, ms: performance.now() - began }));
    });
    sent.once('error', reject);
    sent.end(asked.body && JSON.stringify(asked.body));
  });
}

export function percentiles(took: readonly number[]): string {
  return [0.5, 0.99].map((q) => `p${q * 100} ${fixed(quantile(took, q))} ms`).join(', ');
}
