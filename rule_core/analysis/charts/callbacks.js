// The callbacks of charts, each the body of a function; see rule_core/named_texts.py.
// A canvas takes its colours from the model, not from the page's style.
// name: ink

const dark = matchMedia("(prefers-color-scheme: dark)").matches
const [ink, grid] = dark ? ["#e4e8ed", "#3a424c"] : ["#1b1f24", "#dfe3e8"]
for (const one of axes)
    one.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: grid,
              major_tick_line_color: grid, minor_tick_line_color: null})
for (const one of titles) one.text_color = ink
for (const one of grids) one.grid_line_color = grid
for (const one of bars) {one.title_text_color = ink; one.major_label_text_color = ink}
for (const one of says) one.styles = {color: ink}

// name: selected

const {x0, x1} = cb_obj.geometry
const {x, index} = source.data
let first = null, last = null
for (let at = 0; at < x.length; at++)
    if (x[at] >= x0 && x[at] <= x1) {first ??= index[at]; last = index[at]}
says.text = first == null ? "Nothing is selected." : `Selected indexes: [${first}, ${last}]`
