// The boxes in which the page scrolls, or in which it hides what does not fit (`overflow`, an
// expression for its value), of at least this part of the height of the viewport.
const scrollBoxes = (overflow, part) => {
  const boxes = [];
  for (const element of document.querySelectorAll("body, body *")) {
    const over = element.scrollHeight - element.clientHeight;
    if (over < 100 || element.clientHeight < innerHeight * part) continue;
    if (overflow.test(getComputedStyle(element).overflowY)) boxes.push(element);
  }
  return boxes;
};
// The box in which the page scrolls, if the page does not scroll as a whole: the highest one.
const scrollBox = () => {
  const page = document.scrollingElement || document.documentElement;
  if (!page || page.scrollHeight > innerHeight + 1) return null;
  const higher = (one, other) => one && one.scrollHeight >= other.scrollHeight ? one : other;
  return scrollBoxes(/auto|scroll/, 1 / 2).reduce(higher, null);
};
