/** A refused request as Moyasar answers it (docs.moyasar.com/api/errors). */
export class MoyasarRefusal extends Error {
  readonly status: number;
  readonly body: { type: string; message: string; errors: Readonly<Record<string, readonly string[]>> | null };

  constructor(status: number, errors: Readonly<Record<string, readonly string[]>> | null = null) {
    const [type, message] = TEXTS[status]!;
    super(message);
    this.status = status;
    this.body = { type, message, errors };
  }
}

const TEXTS: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ['invalid_request_error', 'Validation Failed'],
  401: ['authentication_error', 'Invalid authorization credentials'],
  404: ['record_not_found', 'Record not found'],
  429: ['rate_limit_error', 'Too many requests'],
  500: ['api_error', 'We had a problem with our server'],
};
