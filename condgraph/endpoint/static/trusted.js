// HTML that YASGUI makes, of data too, is cleaned before the browser reads it: whatever a name or a literal holds, it runs nothing,
// loads nothing, and puts no forms or styles on the page. The page's policy lets HTML take no other way (Trusted Types); browsers
// that do not know these have the rest of that policy.
"use strict";

{
  const OPTIONS = {
    FORBID_TAGS: ["style", "form", "input", "textarea", "img", "image", "audio", "video", "picture", "source"], FORBID_ATTR: ["srcset"],
  };
  // What the cells of a table are made of is known to be harmless at a glance; there are tens of thousands of them.
  const VALUE = `(?:"[^"<>]*"|'[^'<>]*')`, LINK = `(?!javascript:|vbscript:|data:)[a-z][a-z0-9+.\\-]*:`;
  const ATTRIBUTE = `(?:(?:class|target|title|role|rel)=${VALUE}|href="${LINK}[^"<>]*"|href='${LINK}[^'<>]*')`;
  const PLAIN = new RegExp(`^(?:[^<>]|<(?:div|span|a|p|b|td|tr|pre|sup)(?: ${ATTRIBUTE})*>|</(?:div|span|a|p|b|td|tr|pre|sup)>)*$`, "i");
  // While the scripts load, they try what a browser can do, and there is no data yet. What a parser makes of a text for itself, such
  // as results in XML, is no part of the page.
  const clean = (html, _, sink) =>
    PLAIN.test(html) || sink === "DOMParser parseFromString" || !globalThis.DOMPurify ? html : DOMPurify.sanitize(html, OPTIONS);
  globalThis.trustedTypes?.createPolicy("default", { createHTML: clean });
}
