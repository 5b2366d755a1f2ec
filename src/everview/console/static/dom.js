// Elements from data: text is always text, so that no row can become markup.

const SVG = "http://www.w3.org/2000/svg";

function made(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function h(tag, props, ...children) {
  return made(document.createElement(tag), props, children);
}

export function s(tag, props, ...children) {
  return made(document.createElementNS(SVG, tag), props, children);
}

export function put(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter((child) => child instanceof Node));
}

export function onEnter(act) {
  return {
    click: act,
    keydown: (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        act(event);
      }
    },
  };
}
