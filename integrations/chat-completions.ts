/**
 * Client of a language model with OpenAI's chat completions API: sends two texts and returns JSON. Every failure is
 * `service_unavailable`; the caller must work without an answer.
 */
import { FarthingError } from '../core/foundation/error.ts';
import { readBoundedText } from './read-bounded-text.ts';

export type ChatEndpoint = {
  /** URL to which `/chat/completions` is appended. */
  readonly base_url: string;
  readonly api_key: string | undefined;
  readonly model: string;
  readonly timeout_ms: number;
};

const ANSWER_BYTES_MAX = 1024 * 1024;

export async function requestJson(endpoint: ChatEndpoint, prompt: { system: string; user: string }): Promise<unknown> {
  const { base_url, api_key, model, timeout_ms } = endpoint;
  try {
    const response = await fetch(`${base_url.replace(/\/+$/, '')}/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }),
      },
      body: JSON.stringify({
        model,
        temperature: 0,
        response_format: { type: 'json_object' },
        messages: [
          { role: 'system', content: prompt.system },
          { role: 'user', content: prompt.user },
        ],
      }),
      // Redirects are refused, because the key must be sent to this endpoint alone.
      redirect: 'error',
      signal: AbortSignal.timeout(timeout_ms),
    });
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    return parseContent(JSON.parse(await readBoundedText(response, ANSWER_BYTES_MAX)));
  } catch (error) {
    const why = error instanceof Error && error.name === 'TimeoutError' ? 'no answer in time' : 'no usable answer';
    throw new FarthingError('service_unavailable', `the language model gave ${why}`, { cause: error });
  }
}

type Completion = { choices?: { message?: { content?: unknown } }[] };

/** Parses the JSON of a completion, which some models wrap in code fences. */
function parseContent(completion: Completion): unknown {
  const content = completion.choices?.[0]?.message?.content;
  if (typeof content !== 'string') throw new Error('its answer has no content');
  return JSON.parse(content.replace(/^\s*```(?:json)?\s*|\s*```\s*$/g, ''));
}
