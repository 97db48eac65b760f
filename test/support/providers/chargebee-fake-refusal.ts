/** A refused request as Chargebee answers it (apidocs.chargebee.com, "Error handling and rate limits"). */
export class ChargebeeRefusal extends Error {
  readonly status: number;
  readonly body: Record<string, unknown>;

  constructor(status: number, api_error_code: string, message: string, facts: { param?: string; type?: string } = {}) {
    super(message);
    this.status = status;
    const { param, type = 'invalid_request' } = facts;
    this.body = {
      ...{ message, type, api_error_code, http_status_code: status },
      // The names of older versions.
      ...{ error_code: api_error_code, error_msg: message, http_code: status },
      ...(param === undefined ? {} : { param, error_param: param }),
    };
  }
}

export function refuseValue(param: string, message: string): ChargebeeRefusal {
  return new ChargebeeRefusal(400, 'param_wrong_value', `${param} : ${message}`, { param });
}

export function refuseState(message: string): ChargebeeRefusal {
  return new ChargebeeRefusal(409, 'invalid_state_for_request', message, { type: 'invalid_request' });
}

export function refuseMissing(id: string): ChargebeeRefusal {
  return new ChargebeeRefusal(404, 'resource_not_found', `${id} not found`);
}
