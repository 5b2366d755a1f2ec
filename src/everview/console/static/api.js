// Requests to the server that the page came from. The token lies in this tab's storage and nowhere else.

const KEY = "everview-token";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// The server did not answer at all.
export class Away extends Error {}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
  // A token in the address is taken out of it, so that it is in no history and in no shared link.
  fromAddress() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      token.set(given);
      history.replaceState(null, "", location.pathname + location.search);
    }
  },
};

async function ask(path, options = {}) {
  const headers = { Accept: "application/json", ...(options.headers ?? {}) };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(`/v1/console/${path}`, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Away("the server does not answer");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.code ?? "", body.error ?? `status ${answer.status}`);
  return body;
}

export function get(path, query = {}, signal = undefined) {
  const words = new URLSearchParams(query).toString();
  return ask(words ? `${path}?${words}` : path, { signal });
}

export function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}
